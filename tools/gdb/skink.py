"""Makes GDB understand Skink; `./skink debug` writes build/gdbinit, which loads this file.

Every service is linked at the same address, so an address alone says nothing: what it means depends on
the address space. At each stop this script finds out whose space is loaded (CR3), and exchanges the
symbols of the last service for those of this one. The kernel's own are always loaded.

Commands: `skink threads`, `skink queues`, `skink services`, `skink break SERVICE WHERE`,
`skink symbols SERVICE`. `help skink` describes them.

What is read of the kernel's memory are the fields of kernel_core's `Node` by name, however deep they
lie; tests/host/new_driver.sh tells when one of them is gone.
"""

import gdb

# service name -> file with symbols; build/gdbinit fills it in.
PROGRAMS = {}

# Where threads of services end and those of programs begin (abi::endpoint::SERVICE_SLOTS).
SERVICE_SLOTS = 128
# The constants of kernel/core/src/thread/state.rs.
MESSAGE_EVENTS = {1: "waits for the answer of", 2: "receives from", 4: "sends to", 5: "sends to", 6: "sends to"}
OTHER_EVENTS = {8: "futex", 9: "real time"}
HOLDS = [(0x100, "stopped"), (0x200, "no space")]
# How deep a field may lie in the kernel's structures.
DEEPEST = 8


class Kernel:
    """The kernel's structures, found by the names of their fields."""

    def __init__(self):
        self.node = gdb.parse_and_eval("&kernel::state::NODE").dereference()
        self.hardware = gdb.parse_and_eval("&kernel::state::HARDWARE").dereference()
        self.scheduler = field(self.node, "threads")
        self.threads = field(self.scheduler, "table")
        self.privileges = field(self.node, "privileges")

    def current(self):
        return int(number(field(self.scheduler, "current")))

    def live_slots(self):
        first, last = self.threads.type.range()
        return [slot for slot in range(first, last + 1) if number(field(self.threads[slot], "endpoint")) != 0]

    def name(self, slot):
        """The service in a slot, or the thread's Linux id."""
        if slot < SERVICE_SLOTS:
            raw = field(self.privileges[slot], "name")
            while raw.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
                raw = raw[raw.type.fields()[0]]
            text = bytes(int(raw[i]) for i in range(16)).split(b"\0")[0].decode()
            return text or "slot %d" % slot
        return "tid %d" % number(field(self.threads[slot], "tid"))

    def root(self, slot):
        """The physical address of the thread's top page table."""
        spaces = field(self.hardware, "spaces")
        roots = field(spaces, "roots")
        _, last = roots.type.range()
        space = number(field(self.threads[slot], "space"))
        return number(roots[space]) if space <= last else 0


def number(value):
    """The integer in a value, which may lie in structures of one field."""
    while value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        value = value[value.type.fields()[0]]
    return int(value)


def field(value, name, depth=DEEPEST):
    """The field `name` of a structure, or of the structures in it: nearest first."""
    found = search(value, name, depth)
    if found is None:
        raise gdb.GdbError("the kernel has no field '%s' any more: tools/gdb/skink.py has to follow" % name)
    return found


def search(value, name, depth):
    level = [value]
    for _ in range(depth):
        inner = []
        for structure in level:
            for part in structure.type.strip_typedefs().fields():
                if part.name == name:
                    return structure[part]
                if part.type.strip_typedefs().code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
                    inner.append(structure[part])
        level = inner
    return None


class Symbols:
    """Which service's symbols are loaded, besides the kernel's."""

    loaded = None

    @classmethod
    def load(cls, service):
        if service == cls.loaded:
            return
        if cls.loaded:
            gdb.execute("remove-symbol-file " + quoted(PROGRAMS[cls.loaded]), to_string=True)
        cls.loaded = None
        if service in PROGRAMS:
            gdb.execute("add-symbol-file " + quoted(PROGRAMS[service]), to_string=True)
            cls.loaded = service


def quoted(path):
    return '"%s"' % path


def running_service():
    """The service whose address space is loaded, or None: a program's, or none yet."""
    kernel = Kernel()
    root = int(gdb.parse_and_eval("$cr3")) & ~0xFFF
    for slot in kernel.live_slots():
        if slot < SERVICE_SLOTS and root and kernel.root(slot) == root:
            return kernel.name(slot)
    return None


def on_stop(_event):
    try:
        Symbols.load(running_service())
    except gdb.MemoryError:
        # The kernel has not mapped itself yet.
        pass
    except gdb.error as error:
        print("skink: cannot tell whose address space this is: %s" % error)


gdb.events.stop.connect(on_stop)


class ServiceBreakpoint(gdb.Breakpoint):
    """Stops where one service runs, not where another has code at the same address."""

    def __init__(self, service, address):
        super().__init__("*%#x" % address, type=gdb.BP_HARDWARE_BREAKPOINT)
        self.service = service

    def stop(self):
        return running_service() == self.service


def table(rows):
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())


class Skink(gdb.Command):
    """What Skink's kernel knows: skink threads | queues | services | break | symbols."""

    def __init__(self):
        super().__init__("skink", gdb.COMMAND_USER, prefix=True)


class Threads(gdb.Command):
    """Lists every thread: slot, name, ready queue, what it waits for, program counter."""

    def __init__(self):
        super().__init__("skink threads", gdb.COMMAND_STATUS)

    def invoke(self, _argument, _from_tty):
        kernel = Kernel()
        current = kernel.current()
        rows = [("slot", "name", "queue", "state", "rip")]
        for slot in kernel.live_slots():
            thread = kernel.threads[slot]
            rip = number(field(thread, "rip"))
            rows.append((slot, kernel.name(slot), number(field(thread, "queue")), state(kernel, slot, current), "%#x" % rip))
        table(rows)


def state(kernel, slot, current):
    if slot == current:
        return "runs"
    blocked = field(kernel.threads[slot], "state")
    reasons = number(field(blocked, "reasons"))
    words = [word for bit, word in HOLDS if reasons & bit]
    event = reasons & 0xFF
    if event in MESSAGE_EVENTS:
        words.insert(0, MESSAGE_EVENTS[event] + " " + whom(kernel, number(field(blocked, "peer"))))
    elif event:
        words.insert(0, OTHER_EVENTS[event])
    return ", ".join(words) or "ready"


def whom(kernel, endpoint):
    slot = endpoint & 0xFFF
    _, last = kernel.threads.type.range()
    return kernel.name(slot) if slot <= last and number(field(kernel.threads[slot], "endpoint")) == endpoint else "anybody"


class Queues(gdb.Command):
    """Lists the ready queues that hold threads, best first, and who is in them, next first."""

    def __init__(self):
        super().__init__("skink queues", gdb.COMMAND_STATUS)

    def invoke(self, _argument, _from_tty):
        kernel = Kernel()
        print("runs: " + kernel.name(kernel.current()))
        queues = field(kernel.scheduler, "lists")
        first, last = queues.type.range()
        for queue in range(first, last + 1):
            names = list(members(kernel, number(field(queues[queue], "first"))))
            if names:
                print("%2d: %s" % (queue, ", ".join(names)))


def members(kernel, slot):
    seen = set()
    while slot and slot not in seen:
        seen.add(slot)
        yield kernel.name(slot)
        slot = number(field(kernel.threads[slot], "next"))


class Services(gdb.Command):
    """Lists the services: slot, name, space (CR3), whether its symbols are known and loaded."""

    def __init__(self):
        super().__init__("skink services", gdb.COMMAND_STATUS)

    def invoke(self, _argument, _from_tty):
        kernel = Kernel()
        rows = [("slot", "name", "cr3", "symbols")]
        for slot in kernel.live_slots():
            if slot < SERVICE_SLOTS:
                name = kernel.name(slot)
                symbols = "loaded" if name == Symbols.loaded else PROGRAMS.get(name, "none")
                rows.append((slot, name, "%#x" % kernel.root(slot), symbols))
        table(rows)


class Break(gdb.Command):
    """skink break SERVICE WHERE: stops at WHERE (a function, FILE:LINE) when SERVICE gets there."""

    def __init__(self):
        super().__init__("skink break", gdb.COMMAND_BREAKPOINTS)

    def invoke(self, argument, _from_tty):
        words = argument.split(None, 1)
        if len(words) != 2 or words[0] not in PROGRAMS:
            raise gdb.GdbError("skink break SERVICE WHERE; services: " + ", ".join(sorted(PROGRAMS)))
        Symbols.load(words[0])
        places = [place for place in gdb.decode_line(words[1])[1] or () if place.pc < 1 << 47]
        if not places:
            raise gdb.GdbError("%s has no '%s'" % (words[0], words[1]))
        for place in places:
            ServiceBreakpoint(words[0], place.pc)


class LoadSymbols(gdb.Command):
    """skink symbols SERVICE: loads the symbols of SERVICE until the next stop."""

    def __init__(self):
        super().__init__("skink symbols", gdb.COMMAND_FILES)

    def invoke(self, argument, _from_tty):
        if argument not in PROGRAMS:
            raise gdb.GdbError("skink symbols SERVICE; services: " + ", ".join(sorted(PROGRAMS)))
        Symbols.load(argument)

    def complete(self, _text, word):
        return [name for name in sorted(PROGRAMS) if name.startswith(word)]


for command in (Skink, Threads, Queues, Services, Break, LoadSymbols):
    command()
