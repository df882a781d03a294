/* MINIX4RT's calls that need more than one instruction: registers as abi::rt defines them. */
#include <skink/mrt.h>

int mrt_system_call(uint64_t operation, uint64_t argument, const void *structure)
{
    int64_t status = SKINK_RT_SYSTEM_CALL;
    __asm__ volatile("syscall"
                     : "+a"(status), "+D"(operation), "+S"(argument), "+d"(structure)
                     :
                     : "rcx", "r11", "r8", "r9", "r10", "memory");
    return (int)status;
}

int mrt_getsemid(const char *name)
{
    struct skink_name padded = {{0}};
    for (int i = 0; i < (int)sizeof padded.bytes && name[i]; i++)
        padded.bytes[i] = name[i];
    return mrt_system_call(SKINK_RT_CONTROL_GETSEMID, 0, &padded);
}

/* Makes a call with the words of `out`. A received message is stored in `in` and `header`. */
static int message_call(uint64_t number, long pid, long timeout, uint64_t priority, const mrt_msg_t *out, mrt_msg_t *in,
                        mrt_msghdr_t *header)
{
    int64_t status = (int64_t)number;
    uint64_t w0 = (uint64_t)pid, w1 = (uint64_t)timeout, w2 = priority;
    register uint64_t m0 __asm__("r10") = out ? out->words[0] : 0;
    register uint64_t m1 __asm__("r8") = out ? out->words[1] : 0;
    register uint64_t m2 __asm__("r9") = out ? out->words[2] : 0;
    register uint64_t m3 __asm__("r12") = out ? out->words[3] : 0;
    register uint64_t sender __asm__("r13") = 0;
    register uint64_t deadline __asm__("r14") = 0;
    register uint64_t laxity __asm__("r15") = 0;
    __asm__ volatile("syscall"
                     : "+a"(status), "+D"(w0), "+S"(w1), "+d"(w2), "+r"(m0), "+r"(m1), "+r"(m2), "+r"(m3), "+r"(sender),
                       "+r"(deadline), "+r"(laxity)
                     :
                     : "rcx", "r11", "memory");
    if (status < 0 || !in)
        return (int)status;
    *in = (mrt_msg_t){{m0, m1, m2, m3}};
    if (header)
        *header = (mrt_msghdr_t){
            .source_pid = (uint32_t)w0, .source_number = (int64_t)(sender >> 32), .mtype = w0 >> 32, .mid = (uint32_t)w1,
            .seqno = w1 >> 32, .tstamp = w2, .priority = (uint32_t)sender, .deadline = deadline, .laxity = (int64_t)laxity};
    return 0;
}

int mrt_rqst(long pid, const mrt_msg_t *message, long timeout)
{
    return message_call(SKINK_RT_CALL_RQST, pid, timeout, 0, message, 0, 0);
}

int mrt_arqst(long pid, const mrt_msg_t *message)
{
    return message_call(SKINK_RT_CALL_ARQST, pid, 0, 0, message, 0, 0);
}

int mrt_uprqst(long pid, const mrt_msg_t *message, unsigned priority)
{
    return message_call(SKINK_RT_CALL_UPRQST, pid, 0, priority, message, 0, 0);
}

int mrt_sign(long pid, const mrt_msg_t *message)
{
    return message_call(SKINK_RT_CALL_SIGN, pid, 0, 0, message, 0, 0);
}

int mrt_reply(long pid, const mrt_msg_t *message)
{
    return message_call(SKINK_RT_CALL_REPLY, pid, 0, 0, message, 0, 0);
}

int mrt_rcv(long pid, mrt_msg_t *message, mrt_msghdr_t *header, long timeout)
{
    return message_call(SKINK_RT_CALL_RCV, pid, timeout, 0, 0, message, header);
}

int mrt_rqrcv(long pid, const mrt_msg_t *request, mrt_msg_t *reply, mrt_msghdr_t *header, long timeout)
{
    return message_call(SKINK_RT_CALL_RQRCV, pid, timeout, 0, request, reply, header);
}
