# Bad pointers give EFAULT in every call that takes one.
bad_pointers
