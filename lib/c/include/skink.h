/* Skink for C programs: everything but the kit for services (skink/service.h, skink/chardev.h).
 *
 * Functions of type int or int64_t return a negative error on failure: -ECALLDENIED, not ECALLDENIED. */
#ifndef SKINK_H
#define SKINK_H

#include <skink/abi.h>
#include <skink/hal.h>
#include <skink/io386.h>
#include <skink/ipc.h>
#include <skink/mrt.h>
#include <skink/sys.h>

#endif
