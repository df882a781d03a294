# The errors of MINIX4RT's calls, one by one.
mrt_errors
