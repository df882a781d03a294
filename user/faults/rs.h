/* The system call by which people and programs speak to rs: abi/src/rs.rs in C. */
#ifndef RS_H
#define RS_H

#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SKINK_SERVICE = 1024 };
enum { SERVICE_LIST = 0, SERVICE_STATUS = 1, SERVICE_KILL = 2, SERVICE_INJECT = 6 };
enum { STATE_UP = 2, STATE_RESTARTING = 3, STATE_GIVEN_UP = 4 };
enum { INJECT_KILL_AFTER = 0, INJECT_POKE = 1, INJECT_SILENCE = 2 };

struct service_record {
    char name[16];
    uint32_t endpoint, state, restarts, missed;
    uint64_t started_ns;
    int64_t last_status;
    uint32_t reason, unused;
    uint64_t ended_ns, ready_ns;
};

struct injection {
    uint64_t kind, value, further, bytes;
};

static inline long service_call(uint64_t operation, const char *name, void *buffer, uint64_t bytes)
{
    uint64_t words[2] = { 0, 0 };
    memcpy(words, name, strnlen(name, sizeof words));
    return syscall(SKINK_SERVICE, operation, words[0], words[1], buffer, bytes);
}

#endif
