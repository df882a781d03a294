# Python's own tests of processes that fork, with their queues, locks, pools and shared memory, as far as they need no network: what passes on
# Linux, and the same here. The full form has what takes seconds each as well, and the same tests through managers and of threads.
#: package python3.11,libpython3.11-testsuite,coreutils
#: timeout 1200
#: memory 1024
verdicts() { python3.11 verdicts.py --local "test_multiprocessing_fork:fork\.$1"; }
long='TestFlags|TestNamedResource|TestStartMethod|TestWait\.test_wait_(timeout|integer)|TestResourceTracker\.test_resource_tracker$'
long="$long|WithProcesses(TestBarrier\.test_thousand|TestProcess\.test_many_processes|TestFinalize|TestHeap)"
verdicts "(?!$long)(WithProcesses|Test)"
# These print no more when all is well.
if [ -n "${SKINK_DEEP:-}" ]; then
    verdicts "($long|WithManager|WithThreads)" | grep ' error$' || :
fi
