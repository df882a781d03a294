/* Skink as the system under test: the driver is the service `ramdisk`. */
#ifndef SKINK_H
#define SKINK_H

#include "../rs.h"
#include <errno.h>
#include <stdint.h>
#include <time.h>

#define DRIVER "ramdisk"

static int skink_start(char **arguments)
{
    (void)arguments;
    return 0;
}

/* The harness has the program's file, whose text is the same in memory. */
static int skink_read_text(uint64_t address, unsigned char *bytes, size_t count)
{
    (void)address, (void)bytes, (void)count;
    return 0;
}

static int skink_poke(uint64_t address, uint64_t bytes, size_t count)
{
    struct skink_injection injection = { SKINK_CALL_INJECT_POKE, address, bytes, count };
    return service_call(SKINK_RS_SERVICE_CALL_INJECT, DRIVER, &injection, sizeof injection) < 0 ? -1 : 0;
}

/* Has rs restart the driver, and waits until its successor is up. */
static int skink_restart_driver(void)
{
    struct timespec pause = { .tv_nsec = 1000000 };
    struct skink_service_record record;
    if (service_call(SKINK_RS_SERVICE_CALL_KILL, DRIVER, NULL, 0) < 0)
        return -1;
    while (!service_status(DRIVER, &record) || record.state != SKINK_RS_STATE_UP)
        nanosleep(&pause, NULL);
    return 0;
}

/* How often rs has restarted the driver, and how long the last time took, from its end to its successor's readiness. */
static unsigned skink_restarts(uint64_t *recovery_ns)
{
    struct skink_service_record record;
    if (!service_status(DRIVER, &record))
        return 0;
    *recovery_ns = record.ready_ns > record.ended_ns && record.ended_ns > 0 ? record.ready_ns - record.ended_ns : 0;
    return record.restarts;
}

#endif
