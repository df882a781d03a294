# A Linux program that is linked with lib/c: what it may do with it, and what it may not.
c_interface
