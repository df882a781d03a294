#: status 42
# The command's exit status is that of the whole.
exit 42
