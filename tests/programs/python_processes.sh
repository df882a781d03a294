# Python's own tests of selectors, signals, children and threads: what passes on Linux, and the same here. test_epoll wants a network.
#: package python3.11,libpython3.11-testsuite,coreutils
#: timeout 1200
#: memory 1024
for module in test_selectors test_signal test_subprocess test_threading; do
    python3.11 verdicts.py $module
done
