/* The system call by which people and programs speak to rs: abi/src/rs.rs, whose structures and numbers are in <skink/abi.h>. */
#ifndef RS_H
#define RS_H

#include <skink/abi.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SKINK_SERVICE = 1024 };

/* Asks rs for one of SKINK_RS_SERVICE_CALL about the service `name`. Its result, or -1 and errno. */
static inline long service_call(uint64_t operation, const char *name, void *buffer, uint64_t bytes)
{
    uint64_t words[2] = { 0, 0 };
    memcpy(words, name, strnlen(name, sizeof words));
    return syscall(SKINK_SERVICE, operation, words[0], words[1], buffer, bytes);
}

/* The state of the service `name`. Nonzero when rs told it. */
static inline int service_status(const char *name, struct skink_service_record *record)
{
    return service_call(SKINK_RS_SERVICE_CALL_STATUS, name, record, sizeof *record) == sizeof *record;
}

#endif
