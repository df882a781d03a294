# The wall clock is set while programs read it in the vDSO and by the system call, and while pm, vm or rtc dies of it.
vdso 200
for service in pm vm rtc; do
    # The kernel does not start vm more than a few times in a short while.
    case $service in
        vm) all="1 2 5 13 34 89" ;;
        *) all="1 2 3 5 8 13 21 34 55 89" ;;
    esac
    for k in $all; do
        service inject $service kill-after $k
        vdso 20 | grep -v '^0 of' && echo "$service killed at $k"
    done
    echo "$service"
done
hwclock -s 2>/dev/null
vdso 3
