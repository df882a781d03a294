#: timeout 900
# Cut, changed and random programs are refused or die; the shell goes on.
bad_elf /bin/hog 400 1
bad_elf /bin/service 400 2
echo alive
