/* MINIX4RT: hard real-time processes beside ordinary ones. The module rt in abi.h defines all of it.
 *
 * System calls are for ordinary processes of the superuser: set-up and statistics, without bounds on their time. Kernel calls are for
 * real-time processes, which may make no other calls but exit; only mrt_set2rt is for ordinary ones. All return 0 (or an id) or a negative
 * error. The error constants here are negative, as in MINIX. Times are ticks of 1 / (50 * harmonic) s.
 *
 * Both spellings of the paper are defined: mrt_semattr and mrt_getsemattr, MRT_semup and mrt_semup. */
#ifndef SKINK_MRT_H
#define SKINK_MRT_H

#include <skink/abi.h>

#define E_MRT_BADIRQ (-SKINK_RT_ERROR_E_MRT_BADIRQ)
#define E_MRT_BADTASK (-SKINK_RT_ERROR_E_MRT_BADTASK)
#define E_MRT_BADPRTY (-SKINK_RT_ERROR_E_MRT_BADPRTY)
#define E_MRT_BADIRQT (-SKINK_RT_ERROR_E_MRT_BADIRQT)
#define E_MRT_BADHARM (-SKINK_RT_ERROR_E_MRT_BADHARM)
#define E_MRT_RTACTIVE (-SKINK_RT_ERROR_E_MRT_RTACTIVE)
#define E_MRT_BADPTYPE (-SKINK_RT_ERROR_E_MRT_BADPTYPE)
#define E_MRT_BADPER (-SKINK_RT_ERROR_E_MRT_BADPER)
#define E_MRT_BADDEAD (-SKINK_RT_ERROR_E_MRT_BADDEAD)
#define E_MRT_BADWDOG (-SKINK_RT_ERROR_E_MRT_BADWDOG)
#define E_MRT_NOVTIMER (-SKINK_RT_ERROR_E_MRT_NOVTIMER)
#define E_MRT_NORTMODE (-SKINK_RT_ERROR_E_MRT_NORTMODE)
#define E_MRT_UNSLEEP (-SKINK_RT_ERROR_E_MRT_UNSLEEP)
#define E_MRT_EXITING (-SKINK_RT_ERROR_E_MRT_EXITING)
#define E_MRT_NOMQENT (-SKINK_RT_ERROR_E_MRT_NOMQENT)
#define E_MRT_BADMQSZ (-SKINK_RT_ERROR_E_MRT_BADMQSZ)
#define E_MRT_NOMSGQ (-SKINK_RT_ERROR_E_MRT_NOMSGQ)
#define E_MRT_TIMEOUT (-SKINK_RT_ERROR_E_MRT_TIMEOUT)
#define E_MRT_RTMODE (-SKINK_RT_ERROR_E_MRT_RTMODE)
#define E_MRT_BADRFSH (-SKINK_RT_ERROR_E_MRT_BADRFSH)
#define E_MRT_MQFULL (-SKINK_RT_ERROR_E_MRT_MQFULL)
#define E_MRT_NOSEM (-SKINK_RT_ERROR_E_MRT_NOSEM)
#define E_MRT_BADSEM (-SKINK_RT_ERROR_E_MRT_BADSEM)
#define E_MRT_FREESEM (-SKINK_RT_ERROR_E_MRT_FREESEM)
#define E_MRT_BADNAME (-SKINK_RT_ERROR_E_MRT_BADNAME)
#define E_MRT_BADVALUE (-SKINK_RT_ERROR_E_MRT_BADVALUE)
#define E_MRT_BADFLAGS (-SKINK_RT_ERROR_E_MRT_BADFLAGS)
#define E_MRT_BADMSGQ (-SKINK_RT_ERROR_E_MRT_BADMSGQ)
#define E_MRT_FREEMSGQ (-SKINK_RT_ERROR_E_MRT_FREEMSGQ)
#define E_BAD_DEST (-SKINK_RT_ERROR_E_BAD_DEST)
#define E_TRY_AGAIN (-SKINK_RT_ERROR_E_TRY_AGAIN)
#define E_BAD_FCN (-SKINK_RT_ERROR_E_BAD_FCN)
#define E_BAD_PROC (-SKINK_RT_ERROR_E_BAD_PROC)

#define MRT_NOWAIT ((long)SKINK_RT_NOWAIT)
#define MRT_FOREVER ((long)SKINK_RT_FOREVER)
#define MRT_ANYPROC ((long)SKINK_RT_ANYPROC)
#define MRT_NOPROC ((long)SKINK_RT_NOPROC)

/* Options of mrt_setsval. */
#define MRT_DBG232 SKINK_RT_MODE_DBG232
#define MRT_LATENCY SKINK_RT_MODE_LATENCY
#define MRT_BPIP SKINK_RT_MODE_BPIP
#define MRT_ONESHOT SKINK_RT_MODE_ONESHOT
#define MRT_PRTYMASK SKINK_RT_MODE_PRTYMASK
#define MRT_RTMODE SKINK_RT_MODE_RTMODE

#define SEM_PRTYORDER SKINK_RT_FLAG_SEM_PRTYORDER
#define SEM_PRTYINHERIT SKINK_RT_FLAG_SEM_PRTYINHERIT
#define SEM_MUTEX SKINK_RT_FLAG_SEM_MUTEX
#define SEM_PRTYCEILING SKINK_RT_FLAG_SEM_PRTYCEILING
#define MQ_PRTYORDER SKINK_RT_FLAG_MQ_PRTYORDER
#define MQ_PRTYINHERIT SKINK_RT_FLAG_MQ_PRTYINHERIT
#define P_REALTIME SKINK_RT_FLAG_P_REALTIME
#define P_PERIODIC SKINK_RT_FLAG_P_PERIODIC

#define NRTIRQ SKINK_RT_IRQ_NRTIRQ
#define RTIRQ SKINK_RT_IRQ_RTIRQ
#define TDIRQ SKINK_RT_IRQ_TDIRQ
#define SOFTIRQ SKINK_RT_IRQ_SOFTIRQ
#define ISTMSG SKINK_RT_IRQ_ISTMSG
#define RELATPER SKINK_RT_IRQ_RELATPER

#define MT_UPRQST SKINK_RT_MESSAGE_UPRQST
#define MT_REQUEST SKINK_RT_MESSAGE_REQUEST
#define MT_AREQUEST SKINK_RT_MESSAGE_AREQUEST
#define MT_REPLY SKINK_RT_MESSAGE_REPLY
#define MT_SIGNAL SKINK_RT_MESSAGE_SIGNAL
#define MT_RQRCV SKINK_RT_MESSAGE_RQRCV
#define MT_KRNIRQ SKINK_RT_MESSAGE_KRNIRQ
#define MT_KRNDLINE SKINK_RT_MESSAGE_KRNDLINE
#define MT_KRNWDOG SKINK_RT_MESSAGE_KRNWDOG
#define MT_KRNPROC SKINK_RT_MESSAGE_KRNPROC

typedef struct skink_system_values mrt_sval_t;
typedef struct skink_system_statistics mrt_sstat_t;
typedef struct skink_process_attributes mrt_pattr_t;
typedef struct skink_process_statistics mrt_pstat_t;
typedef struct skink_process_internals mrt_pint_t;
typedef struct skink_irq_attributes mrt_iattr_t;
typedef struct skink_irq_statistics mrt_istat_t;
typedef struct skink_irq_internals mrt_iint_t;
typedef struct skink_semaphore_attributes mrt_semattr_t;
typedef struct skink_semaphore_statistics mrt_semstat_t;
typedef struct skink_semaphore_internals mrt_semint_t;
typedef struct skink_queue_statistics mrt_mqstat_t;
typedef struct skink_mrt_header mrt_msghdr_t;
typedef struct {
    uint64_t words[SKINK_RT_MESSAGE_WORDS];
} mrt_msg_t;

/* System calls. */
int mrt_system_call(uint64_t operation, uint64_t argument, const void *structure);

static inline int mrt_RTstart(unsigned harmonic, unsigned refresh)
{
    return mrt_system_call(SKINK_RT_CONTROL_RTSTART, harmonic, (const void *)(uintptr_t)refresh);
}
static inline int mrt_restart(unsigned harmonic, unsigned refresh)
{
    return mrt_system_call(SKINK_RT_CONTROL_RESTART, harmonic, (const void *)(uintptr_t)refresh);
}
static inline int mrt_RTstop(void) { return mrt_system_call(SKINK_RT_CONTROL_RTSTOP, 0, 0); }
static inline int mrt_setsval(uint64_t options) { return mrt_system_call(SKINK_RT_CONTROL_SETSVAL, options, 0); }
static inline int mrt_getsval(mrt_sval_t *to) { return mrt_system_call(SKINK_RT_CONTROL_GETSVAL, 0, to); }
static inline int mrt_getsstat(mrt_sstat_t *to) { return mrt_system_call(SKINK_RT_CONTROL_GETSSTAT, 0, to); }
static inline int mrt_clrsstat(void) { return mrt_system_call(SKINK_RT_CONTROL_CLRSSTAT, 0, 0); }

/* Attributes of the caller, which mrt_set2rt puts into effect. */
static inline int mrt_setpattr(const mrt_pattr_t *from) { return mrt_system_call(SKINK_RT_CONTROL_SETPATTR, 0, from); }
static inline int mrt_getpattr(long pid, mrt_pattr_t *to) { return mrt_system_call(SKINK_RT_CONTROL_GETPATTR, pid, to); }
static inline int mrt_getpstat(long pid, mrt_pstat_t *to) { return mrt_system_call(SKINK_RT_CONTROL_GETPSTAT, pid, to); }
static inline int mrt_clrpstat(long pid) { return mrt_system_call(SKINK_RT_CONTROL_CLRPSTAT, pid, 0); }
static inline int mrt_getpint(long pid, mrt_pint_t *to) { return mrt_system_call(SKINK_RT_CONTROL_GETPINT, pid, to); }

static inline int mrt_setiattr(int irq, const mrt_iattr_t *from) { return mrt_system_call(SKINK_RT_CONTROL_SETIATTR, irq, from); }
static inline int mrt_getiattr(int irq, mrt_iattr_t *to) { return mrt_system_call(SKINK_RT_CONTROL_GETIATTR, irq, to); }
static inline int mrt_getistat(int irq, mrt_istat_t *to) { return mrt_system_call(SKINK_RT_CONTROL_GETISTAT, irq, to); }
static inline int mrt_clristat(int irq) { return mrt_system_call(SKINK_RT_CONTROL_CLRISTAT, irq, 0); }
static inline int mrt_getiint(int irq, mrt_iint_t *to) { return mrt_system_call(SKINK_RT_CONTROL_GETIINT, irq, to); }

static inline int mrt_semalloc(const mrt_semattr_t *from) { return mrt_system_call(SKINK_RT_CONTROL_SEMALLOC, 0, from); }
static inline int mrt_semfree(int id) { return mrt_system_call(SKINK_RT_CONTROL_SEMFREE, id, 0); }
/* Returns the semaphore with this name of at most 16 characters. */
int mrt_getsemid(const char *name);
static inline int mrt_getsemattr(int id, mrt_semattr_t *to) { return mrt_system_call(SKINK_RT_CONTROL_GETSEMATTR, id, to); }
static inline int mrt_getsemstat(int id, mrt_semstat_t *to) { return mrt_system_call(SKINK_RT_CONTROL_GETSEMSTAT, id, to); }
static inline int mrt_clrsemstat(int id) { return mrt_system_call(SKINK_RT_CONTROL_CLRSEMSTAT, id, 0); }
static inline int mrt_getsemint(int id, mrt_semint_t *to) { return mrt_system_call(SKINK_RT_CONTROL_GETSEMINT, id, to); }
#define mrt_semattr mrt_getsemattr
#define mrt_semstat mrt_getsemstat
#define mrt_semint mrt_getsemint

static inline int mrt_getmqstat(int id, mrt_mqstat_t *to) { return mrt_system_call(SKINK_RT_CONTROL_GETMQSTAT, id, to); }
static inline int mrt_clrmqstat(int id) { return mrt_system_call(SKINK_RT_CONTROL_CLRMQSTAT, id, 0); }

/* Kernel calls, inline, so that they cost no more than the trap. */
static inline int mrt_kernel_call(uint64_t number, long first, long second)
{
    int64_t status = (int64_t)number;
    __asm__ volatile("syscall" : "+a"(status), "+D"(first), "+S"(second) : : "rcx", "r11", "memory");
    return (int)status;
}

static inline int mrt_set2rt(void) { return mrt_kernel_call(SKINK_RT_CALL_SET2RT, 0, 0); }
static inline int mrt_set2nrt(void) { return mrt_kernel_call(SKINK_RT_CALL_SET2NRT, 0, 0); }
static inline int mrt_semdown(int id, long timeout) { return mrt_kernel_call(SKINK_RT_CALL_SEMDOWN, id, timeout); }
static inline int mrt_semup(int id) { return mrt_kernel_call(SKINK_RT_CALL_SEMUP, id, 0); }
static inline int mrt_sleep(long ticks) { return mrt_kernel_call(SKINK_RT_CALL_SLEEP, ticks, 0); }
static inline int mrt_wakeup(long pid) { return mrt_kernel_call(SKINK_RT_CALL_WAKEUP, pid, 0); }
/* Prints 80 characters, or up to a zero. */
static inline int mrt_print(const char *text) { return mrt_kernel_call(SKINK_RT_CALL_PRINT, (long)text, 0); }
#define MRT_semdown mrt_semdown
#define MRT_semup mrt_semup

/* Messages. `header` may be null. */
int mrt_rqst(long pid, const mrt_msg_t *message, long timeout);
int mrt_arqst(long pid, const mrt_msg_t *message);
int mrt_uprqst(long pid, const mrt_msg_t *message, unsigned priority);
int mrt_sign(long pid, const mrt_msg_t *message);
int mrt_reply(long pid, const mrt_msg_t *message);
int mrt_rcv(long pid, mrt_msg_t *message, mrt_msghdr_t *header, long timeout);
int mrt_rqrcv(long pid, const mrt_msg_t *request, mrt_msg_t *reply, mrt_msghdr_t *header, long timeout);

#endif
