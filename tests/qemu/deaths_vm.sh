# vm is killed at the k-th message of a behaviour of Linux (tests/linux), and the behaviour is the same: files that two processes have mapped, clocks
# in the vDSO. As deaths.sh, but that the kernel starts vm again eight times in ten seconds only, so that the programs sleep: where instructions are
# counted, a guest that sleeps takes no time of the host.
# Here a sample; the full form goes through every k up to 200 of every behaviour.
#: system ramdisk
#: icount
#: timeout 600
step=67 every=13
[ -z "${SKINK_DEEP:-}" ] || step=1 every=1
for name in mappings vdso; do
    deaths_$name vm 200 $step $every && echo "$name: the same while vm dies"
    # The next program does not know of the last one's deaths.
    sleep 11
done
