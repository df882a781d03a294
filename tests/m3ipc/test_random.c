/* Random calls with hostile arguments by an ordinary user: wrong containers, endpoints, pids, sizes and pointers. None ends the process that
 * makes it; the server and the client beside them notice nothing. SKINK_DEEP in the environment: a million.
 */
#include "m3test.h"

enum { SERVER = 2, CLIENT = 3, ATTACKERS = 4, USER = 1000 };

static long calls = 20000;
static unsigned long seed;
static char *read_only;
static volatile int *stop;

static unsigned long any(unsigned long below)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (seed >> 33) % below;
}

static int endpoint(void)
{
    static const int some[] = {ANY, NONE, SELF, SERVER, CLIENT, -35, -1, 63, 64, 35570 + 70, 0x7fffffff, -0x7fffffff - 1};
    return any(3) ? some[any(sizeof some / sizeof *some)] : (int)any(1ul << 31);
}

/* As endpoint, but for the two beside: who shares a container may write into those who wait. */
static int another(void)
{
    int some = endpoint();
    return some == SERVER || some == CLIENT ? 35570 + 70 : some;
}

static void *pointer(void)
{
    static char room[4096];
    void *some[] = {room, room + 1, NULL, read_only, (void *)0xffffffff80000000, (void *)0x8000000000000000, (void *)-1, (void *)4096, (void *)0x401000};
    return some[any(sizeof some / sizeof *some)];
}

static int size(void)
{
    static const int some[] = {0, 1, 4096, MAXCOPYLEN, MAXCOPYLEN + 1, -1, 0x7fffffff};
    return some[any(sizeof some / sizeof *some)];
}

static void one_call(void)
{
    static message m;
    message *p = any(2) ? &m : pointer();
    int vm = any(4) ? 0 : (int)any(40) - 4, nr = (int)any(300) - 40;
    switch (any(29)) {
    case 0: mnx_bind(vm, nr); break;
    case 1: mnx_tbind(vm, nr); break;
    case 2: mnx_lclbind(vm, any(3) ? (int)any(2000) : -1, nr); break;
    case 3: mnx_unbind(vm, endpoint()); break;
    case 4: mnx_getep((int)any(3000) - 5); break;
    case 5: mnx_send_T(endpoint(), p, any(2)); break;
    case 6: mnx_receive_T(endpoint(), p, any(2)); break;
    case 7: mnx_sendrec_T(endpoint(), p, any(2)); break;
    case 8: mnx_rcvrqst_T(p, any(2)); break;
    case 9: mnx_reply(endpoint(), p); break;
    case 10: mnx_notify(endpoint()); break;
    case 11: mnx_ntfy_value(endpoint(), nr); break;
    case 12: mnx_src_notify(nr, endpoint()); break;
    case 13: mnx_hdw_notify(vm, endpoint()); break;
    case 14: mnx_vcopy(endpoint(), pointer(), another(), pointer(), size()); break;
    case 15: mnx_vcopy(SELF, pointer(), another(), pointer(), size()); break;
    case 16: mnx_wakeup(vm, any(2) ? endpoint() : 35570 + 99); break;
    case 17: mnx_wait4bindep_T(endpoint(), any(2)); break;
    case 18: mnx_wait4unbind_T(endpoint(), any(2)); break;
    case 19: mnx_drvs_end(); break;
    case 20: mnx_vm_end(vm); break;
    case 21: mnx_bkupbind(vm, (int)any(2000), endpoint(), (int)any(40) - 4); break;
    case 22: mnx_replbind(vm, (int)any(2000), endpoint()); break;
    case 23: mnx_migr_start(vm, endpoint()); break;
    case 24: mnx_getvminfo(vm, pointer()); break;
    case 25: mnx_getprocinfo(vm, nr, pointer()); break;
    case 26: mnx_getpriv(vm, endpoint(), pointer()); break;
    case 27: mnx_rmtbind(vm, pointer(), endpoint(), 1); break;
    default: mnx_vm_init(pointer()); break;
    }
    m.m_type = (int)any(1ul << 31) << any(2);
}

static void attacker(unsigned long own)
{
    seed = own;
    if (setgid(USER) != 0 || setuid(USER) != 0)
        exit(1);
    for (long i = 0; i < calls / ATTACKERS; i++)
        one_call();
    exit(0);
}

static void server(void)
{
    message m;
    mnx_wait4bindep(CLIENT);
    while (mnx_receive(CLIENT, &m) == 0) {
        m.m1_i1 *= 2;
        if (mnx_send(CLIENT, &m) != 0)
            break;
    }
}

static void client(void)
{
    long wrong = 0;
    for (int i = 0; !*stop; i++) {
        message m = text_message(1, i);
        wrong += mnx_sendrec(SERVER, &m) != 0 || m.m1_i1 != 2 * i;
        usleep(200);
    }
    printf("wrong answers: %ld\n", wrong);
}

int main(void)
{
    VM_usr_t vm = {.vm_vmid = 0, .vm_name = "test", .vm_flags = VM_OPEN};
    pid_t pids[ATTACKERS];
    if (getenv("SKINK_DEEP"))
        calls = 1000000;
    setvbuf(stdout, NULL, _IOLBF, 0);
    SHOW(mnx_drvs_init(0, NULL));
    SHOW(mnx_vm_init(&vm));
    stop = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    read_only = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t one = spawn(SERVER, server), other = spawn(CLIENT, client);
    for (int i = 0; i < ATTACKERS; i++) {
        fflush(stdout);
        pids[i] = fork();
        if (pids[i] == 0)
            attacker(i + 1);
    }
    for (int i = 0; i < ATTACKERS; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        if (status != 0)
            printf("attacker %d: %#x\n", i, status);
    }
    *stop = 1;
    reap(other);
    kill(one, SIGKILL);
    waitpid(one, NULL, 0);
    SHOW(mnx_vm_end(0));
    return 0;
}
