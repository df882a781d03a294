"""Runs tests of Python's test suite by the names of modules, without those below; prints a line for each: its name and verdict.
MODULE:PATTERN means the tests of a module that have the pattern in their names. After --local, sockets of networks are refused, and tests that
ask for one have the verdict "network", on Linux too."""
import errno, io, os, re, socket, sys, unittest, warnings
from test import support

LEFT_OUT = [
    # Maps a sparse file of 2 GiB and more: a shared mapping takes space for the holes it shows.
    r"test_mmap\.LargeMmapTests",
    # There is no network yet.
    r"test_os\.TestSendfile",
    # Listen on addresses, which need a network.
    r"test_signal\.WakeupFDTests\.(test_invalid_socket|test_set_wakeup_fd_socket_result)",
    # A child listens on an address, and another waits for it.
    r"TestPicklingConnections\.test_pickling",
    r"TestRemoteManager\.test_remote",
    # So does a thread, which the test waits for.
    r"test_streams\.StreamTests\.test_drain_raises",
    # Looks for a service in /etc/services, which is netbase's.
    r"test_create_connection_service_name",
    # Opens descriptors up to the limit, if that is low.
    r"test_no_leaking",
    # Says whether the output is a terminal, which is so here.
    r"test_os\.TermsizeTests\.test_does_not_crash",
]

class Verdicts(unittest.TestResult):
    def __init__(self, *args):
        super().__init__(*args)
        self.lines = []

    def startTest(self, test):
        super().startTest(test)
        Local.asked = False

    def note(self, verdict, test):
        self.lines.append(f'{test.id()} {"network" if Local.asked else verdict}')

    def addSuccess(self, test):
        self.note('ok', test)

    def addError(self, test, error):
        self.note('error', test)
        sys.stderr.write(self._exc_info_to_string(error, test))

    addFailure = addError

    def addSkip(self, test, reason):
        self.note('skipped', test)

    def addExpectedFailure(self, test, error):
        self.note('ok', test)

    def addSubTest(self, test, part, error):
        if error:
            self.addError(test, error)

def flat(suite, wanted):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test, wanted)
        elif re.search(wanted, test.id()) and not any(re.search(pattern, test.id()) for pattern in LEFT_OUT):
            yield test

class Local(socket.socket):
    """A socket of this machine alone."""
    asked = False

    def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
        if fileno is None and family != socket.AF_UNIX:
            Local.asked = True
            raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
        super().__init__(family, type, proto, fileno)

def without_network(tests):
    """Has test_epoll use pairs of local sockets where it would connect to itself by an address."""
    def set_up(self):
        self.serverSocket = socket.socket(socket.AF_UNIX)
        self.connections = [self.serverSocket]

    def connected_pair(self):
        pair = socket.socketpair()
        pair[0].setblocking(False)
        self.connections.extend(pair)
        return pair

    tests.setUp, tests._connected_pair = set_up, connected_pair

def main():
    support.verbose = False
    warnings.simplefilter('ignore')
    # Children of tests print too.
    lines = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    arguments = sys.argv[1:]
    if arguments[0] == '--local':
        socket.socket = Local
        arguments.pop(0)
    for argument in arguments:
        name, _, wanted = argument.partition(':')
        result = Verdicts()
        if name == 'test_epoll':
            from test.test_epoll import TestEPoll
            without_network(TestEPoll)
        tests = unittest.defaultTestLoader.loadTestsFromName(f'test.{name}')
        unittest.TestSuite(flat(tests, wanted)).run(result)
        print('\n'.join(sorted(set(result.lines))), file=lines, flush=True)

# A process that multiprocessing spawns imports this file, and is not to run the tests once more.
if __name__ == '__main__':
    main()
