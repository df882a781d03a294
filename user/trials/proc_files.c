/* Files of /proc that programs read: what they say agrees with what system calls say. It prints the same on Linux. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static char text[1 << 16];

/* The content of a file; exits if it cannot be read. */
static char *read_file(const char *path)
{
	int file = open(path, O_RDONLY);
	size_t have = 0;
	ssize_t got;
	if (file < 0) {
		printf("%s: %s\n", path, strerrorname_np(errno));
		text[0] = 0;
		return text;
	}
	while ((got = read(file, text + have, sizeof text - 1 - have)) > 0)
		have += got;
	close(file);
	text[have] = 0;
	return text;
}

/* The rest of the line that begins with a name. */
static const char *field(const char *content, const char *name)
{
	static char line[512];
	size_t length = strlen(name);
	for (const char *at = content; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (!strncmp(at, name, length)) {
			snprintf(line, sizeof line, "%.*s", (int)strcspn(at + length, "\n"), at + length);
			return line;
		}
	return "(no such line)";
}

static void check(const char *what, int is_true)
{
	printf("%s: %s\n", what, is_true ? "yes" : "NO");
}

/* Each of these holds a number. */
static void settings(void)
{
	static const char *const numbers[] = {
		"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max", "/proc/sys/kernel/tainted", "/proc/sys/kernel/cap_last_cap", "/proc/sys/kernel/ngroups_max",
		"/proc/sys/kernel/msgmni", "/proc/sys/kernel/msgmax", "/proc/sys/kernel/msgmnb", "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/overflowuid",
		"/proc/sys/kernel/panic", "/proc/sys/kernel/random/entropy_avail", "/proc/sys/kernel/random/poolsize",
		"/proc/sys/fs/pipe-max-size", "/proc/sys/fs/pipe-user-pages-soft", "/proc/sys/fs/pipe-user-pages-hard", "/proc/sys/fs/file-max", "/proc/sys/fs/nr_open",
		"/proc/sys/fs/lease-break-time", "/proc/sys/fs/leases-enable", "/proc/sys/fs/protected_symlinks", "/proc/sys/fs/epoll/max_user_watches",
		"/proc/sys/fs/mqueue/queues_max", "/proc/sys/fs/mqueue/msg_max", "/proc/sys/fs/mqueue/msgsize_max", "/proc/sys/fs/aio-max-nr",
		"/proc/sys/vm/max_map_count", "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/overcommit_ratio", "/proc/sys/vm/swappiness", "/proc/sys/vm/min_free_kbytes",
		"/proc/sys/vm/dirty_expire_centisecs", "/proc/sys/net/core/somaxconn",
	};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		char path[128], *end;
		snprintf(path, sizeof path, "%s", numbers[i]);
		read_file(path);
		errno = 0;
		strtoull(text, &end, 10);
		printf("%s %s\n", numbers[i], end != text && !strcmp(end, "\n") && !errno ? "is a number" : text);
	}
	struct utsname names;
	uname(&names);
	const struct { const char *path, *value; } words[] = {
		{ "ostype", names.sysname }, { "osrelease", names.release }, { "version", names.version },
		{ "hostname", names.nodename }, { "domainname", names.domainname },
	};
	for (size_t i = 0; i < 5; i++) {
		char path[128];
		snprintf(path, sizeof path, "/proc/sys/kernel/%s", words[i].path);
		read_file(path);
		text[strcspn(text, "\n")] = 0;
		printf("%s ", words[i].path);
		check("is that of uname", !strcmp(text, words[i].value));
	}
	int a, b, c, d;
	check("sem has four numbers", sscanf(read_file("/proc/sys/kernel/sem"), "%d%d%d%d", &a, &b, &c, &d) == 4);
	check("printk has four numbers", sscanf(read_file("/proc/sys/kernel/printk"), "%d%d%d%d", &a, &b, &c, &d) == 4);
	check("file-nr has three numbers", sscanf(read_file("/proc/sys/fs/file-nr"), "%d%d%d", &a, &b, &c) == 3);
	check("pids are below pid_max", getpid() < atoi(read_file("/proc/sys/kernel/pid_max")));
	char boot[64], one[64];
	strcpy(boot, read_file("/proc/sys/kernel/random/boot_id"));
	check("boot_id stays", !strcmp(boot, read_file("/proc/sys/kernel/random/boot_id")) && strlen(boot) == 37);
	strcpy(one, read_file("/proc/sys/kernel/random/uuid"));
	check("uuid changes", strcmp(one, read_file("/proc/sys/kernel/random/uuid")) && one[14] == '4' && one[23] == '-');
	int file = open("/proc/sys/kernel/ostype", O_WRONLY);
	check("ostype cannot be written", (file < 0 || write(file, "x", 1) < 0) && errno == EACCES);
	close(file);
}

static void descriptors(void)
{
	char path[64];
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	lseek(file, 100, SEEK_SET);
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", file);
	read_file(path);
	printf("file: pos%s", field(text, "pos:"));
	printf(" flags%s\n", field(text, "flags:"));
	struct stat status;
	fstat(file, &status);
	check("its ino is that of fstat", strtoull(field(text, "ino:"), NULL, 10) == status.st_ino);
	int counter = eventfd(42, 0);
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", counter);
	printf("eventfd: count%s\n", field(read_file(path), "eventfd-count:"));
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec spec = { .it_value = { 1000, 0 }, .it_interval = { 5, 7 } };
	timerfd_settime(timer, 0, &spec, NULL);
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", timer);
	read_file(path);
	printf("timer: clock%s", field(text, "clockid:"));
	printf(" ticks%s", field(text, "ticks:"));
	printf(" interval%s\n", field(text, "it_interval:"));
	check("it ends within 1000 seconds", strtol(field(text, "it_value: ("), NULL, 10) > 900);
	int epoll = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = 0x1234 };
	epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &event);
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll);
	int number, events;
	long data;
	read_file(path);
	const char *line = strstr(text, "tfd:");
	int got = line ? sscanf(line, "tfd: %d events: %x data: %lx", &number, &events, &data) : 0;
	check("epoll has its registration", got == 3 && number == counter && data == 0x1234 && events & EPOLLET);
	close(99);
	check("no file 99", access("/proc/self/fdinfo/99", F_OK) < 0 && errno == ENOENT);
}

static void locks(const char *folder)
{
	char path[256], wanted[64];
	snprintf(path, sizeof path, "%s/proc_files", folder);
	int file = open(path, O_RDWR | O_CREAT, 0600);
	struct flock lock = { .l_type = F_WRLCK, .l_start = 10, .l_len = 5 };
	fcntl(file, F_SETLK, &lock);
	struct stat status;
	fstat(file, &status);
	snprintf(wanted, sizeof wanted, "WRITE %d %02x:%02x:%llu 10 14\n", getpid(), major(status.st_dev), minor(status.st_dev),
		 (unsigned long long)status.st_ino);
	check("the lock is in /proc/locks", strstr(read_file("/proc/locks"), wanted) != NULL);
	unlink(path);
	close(file);
	check("and not when the file is closed", strstr(read_file("/proc/locks"), wanted) == NULL);
}

static void sockets(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0proc_files" };
	int socket_ = socket(AF_UNIX, SOCK_STREAM, 0);
	bind(socket_, (void *)&name, sizeof(sa_family_t) + 11);
	listen(socket_, 1);
	struct stat status;
	fstat(socket_, &status);
	const char *line = strstr(read_file("/proc/net/unix"), " @proc_files\n");
	while (line > text && line[-1] != '\n')
		line--;
	unsigned count, protocol, flags, type, state;
	unsigned long inode;
	int got = line ? sscanf(line, "%*[^:]: %x %x %x %x %x %lu", &count, &protocol, &flags, &type, &state, &inode) : 0;
	check("the socket is in /proc/net/unix", got == 6 && flags == 0x10000 && type == SOCK_STREAM && state == 1);
	check("with its inode", inode == status.st_ino);
	close(socket_);
}

static void *thread(void *unused)
{
	char target[64] = "", wanted[64];
	readlink("/proc/thread-self", target, sizeof target - 1);
	snprintf(wanted, sizeof wanted, "%d/task/%ld", getpid(), syscall(SYS_gettid));
	check("thread-self", !strcmp(target, wanted));
	snprintf(wanted, sizeof wanted, "/proc/self/task/%ld/status", syscall(SYS_gettid));
	check("status has the id of the thread", strtol(field(read_file(wanted), "Pid:"), NULL, 10) == syscall(SYS_gettid));
	return unused;
}

static void process(void)
{
	char path[64], wanted[128], target[128];
	snprintf(wanted, sizeof wanted, "%d", getpid());
	ssize_t length = readlink("/proc/self", target, sizeof target - 1);
	target[length > 0 ? length : 0] = 0;
	check("self", !strcmp(target, wanted));
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGUSR2, SIG_IGN);
	raise(SIGUSR1);
	umask(027);
	setpgid(0, 0);
	read_file("/proc/self/status");
	printf("Umask%s\n", field(text, "Umask:"));
	printf("SigPnd%s ", field(text, "SigPnd:"));
	printf("SigBlk%s ", field(text, "SigBlk:"));
	printf("SigIgn%s\n", field(text, "SigIgn:"));
	printf("Threads%s NoNewPrivs", field(text, "Threads:"));
	printf("%s Seccomp", field(text, "NoNewPrivs:"));
	printf("%s\n", field(text, "Seccomp:"));
	check("NSpgid is the group", strtol(field(text, "NSpgid:"), NULL, 10) == getpgrp());
	for (const char *const *name = (const char *const[]){ "Tgid:", "PPid:", "TracerPid:", "Uid:", "Gid:", "FDSize:",
		     "Groups:", "VmSize:", "VmRSS:", "VmData:", "VmStk:", "VmSwap:", "SigQ:", "ShdPnd:", "SigCgt:", "CapInh:",
		     "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", "Cpus_allowed:", "Cpus_allowed_list:", "Mems_allowed:", NULL }; *name; name++)
		if (!strcmp(field(text, *name), "(no such line)"))
			printf("status has no %s\n", *name);
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	unsigned long soft, hard;
	sscanf(field(read_file("/proc/self/limits"), "Max open files"), "%lu%lu", &soft, &hard);
	check("limits are those of getrlimit", soft == limit.rlim_cur && hard == limit.rlim_max);
	printf("nice:%.23s\n", field(text, "Max nice priority"));
	unsigned long pair[2], entry = 0;
	int file = open("/proc/self/auxv", O_RDONLY);
	while (read(file, pair, sizeof pair) == sizeof pair && pair[0])
		if (pair[0] == AT_ENTRY)
			entry = pair[1];
	close(file);
	check("auxv", entry == getauxval(AT_ENTRY));
	printf("uid_map %s", read_file("/proc/self/uid_map"));
	printf("setgroups %s", read_file("/proc/self/setgroups"));
	int links = 0;
	for (const char *const *name = (const char *const[]){ "cgroup", "ipc", "mnt", "net", "pid", "user", "uts", NULL }; *name; name++) {
		snprintf(path, sizeof path, "/proc/self/ns/%s", *name);
		length = readlink(path, target, sizeof target - 1);
		snprintf(wanted, sizeof wanted, "%s:[", *name);
		links += length > 0 && !strncmp(target, wanted, strlen(wanted)) && target[length - 1] == ']';
	}
	printf("%d namespaces\n", links);
	struct stat status;
	stat("/", &status);
	unsigned major_number, minor_number;
	const char *line = strstr(read_file("/proc/self/mountinfo"), " / / ");
	while (line && line > text && line[-1] != '\n')
		line--;
	int got = line ? sscanf(line, "%*d %*d %u:%u / / ", &major_number, &minor_number) : 0;
	check("mountinfo has the root", got == 2 && makedev(major_number, minor_number) == status.st_dev);
	check("with its separator", line && strstr(line, " - "));
	pid_t child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
	check("children", atoi(read_file(path)) == child);
	kill(child, SIGKILL);
	wait(NULL);
	pthread_t id;
	pthread_create(&id, NULL, thread, NULL);
	pthread_join(id, NULL);
	check("wrong names", access("/proc/self/nothing", F_OK) && errno == ENOENT && mkdir("/proc/new", 0700) && errno == ENOENT);
}

static void system_files(void)
{
	read_file("/proc/version");
	struct utsname names;
	uname(&names);
	char wanted[256];
	snprintf(wanted, sizeof wanted, "Linux version %s ", names.release);
	check("version", !strncmp(text, wanted, strlen(wanted)));
	check("cpuinfo has the flags of the processor", strstr(field(read_file("/proc/cpuinfo"), "flags"), " sse2 ") != NULL);
	check("vmstat counts free pages", strtol(field(read_file("/proc/vmstat"), "nr_free_pages "), NULL, 10) > 0);
	check("swaps", !strncmp(read_file("/proc/swaps"), "Filename\t", 9));
	check("filesystems", strstr(read_file("/proc/filesystems"), "nodev\tproc\n") != NULL);
	double load[3];
	int running, all, last;
	check("loadavg", sscanf(read_file("/proc/loadavg"), "%lf %lf %lf %d/%d %d", load, load + 1, load + 2, &running, &all, &last) == 6);
	ssize_t length = readlink("/proc/mounts", wanted, sizeof wanted);
	check("mounts", length == 11 && !memcmp(wanted, "self/mounts", 11));
	for (const char *const *name = (const char *const[]){ "/proc/consoles", "/proc/devices", "/proc/meminfo", "/proc/misc",
		     "/proc/stat", "/proc/uptime", NULL }; *name; name++)
		if (!*read_file(*name))
			printf("%s is empty\n", *name);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	settings();
	system_files();
	descriptors();
	locks(argc > 1 ? argv[1] : ".");
	sockets();
	process();
	return 0;
}
