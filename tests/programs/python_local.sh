# Python's own tests of local sockets and of epoll, that with pairs of sockets instead of connections: what passes on Linux, and the same here.
#: package python3.11,libpython3.11-testsuite,coreutils
#: timeout 1200
#: memory 1024
python3.11 verdicts.py 'test_socket:Unix|UDS|SocketPair|SCMRightsStream|AbstractNamespace|SendRecvFds' test_epoll
