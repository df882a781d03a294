#: system ramdisk
#: icount
#: timeout 900
# A periodic process of 1 kHz meets every deadline while three users attack what they share with others: for 2 seconds of the guest's time,
# or 60 in the full form.
seconds=2
[ -z "${SKINK_DEEP:-}" ] || seconds=60
exec 3>&1
{
    sleep 0.3
    for user in 1000 1001 1002; do
        attacker $user $seconds $user >/dev/null 2>&1 &
    done
    wait
    echo all attacks made >&3
} | rt_periodic | grep missed
