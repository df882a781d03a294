# Python's own tests of asyncio, as far as they need no network: what passes on Linux, and the same here. A test that asks for an address has the
# verdict "network". Not here are test_sendfile and test_ssl, whose tests connect to themselves by addresses. The full form has the two modules
# that take longest as well.
#: package python3.11,libpython3.11-testsuite,coreutils
#: timeout 1200
#: memory 1024
verdicts() { python3.11 verdicts.py --local test_asyncio.test_$1; }
for module in buffered_proto context events futures futures2 locks pep492 proactor_events protocols queues runners \
    selector_events server sock_lowlevel sslproto streams taskgroups threads timeouts transports unix_events waitfor; do
    verdicts $module
done
# These print no more when all is well.
if [ -n "${SKINK_DEEP:-}" ]; then
    for module in base_events subprocess; do
        verdicts $module | grep ' error$' || :
    done
fi
