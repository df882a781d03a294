# Python's own tests of what it asks the system for: what passes and what is left out on Linux, and the same here.
#: package python3.11,libpython3.11-testsuite,coreutils
#: timeout 600
#: memory 1024
for module in test_select test_pty test_mmap test_posix test_os; do
    python3.11 verdicts.py $module
done
