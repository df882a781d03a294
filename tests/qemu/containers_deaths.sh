# pm, vm and vfs die while containers run: limits and counts are what they were, and a container ends as ever.
#: timeout 600
mkdir -p /c/bin /c/proc /c/dev /c/tmp
for command in busybox contained; do cp /bin/$command /c/bin; done
for name in sh sleep true; do ln -s busybox /c/bin/$name; done
last='3 17'
[ -z "${SKINK_DEEP:-}" ] || last='1 2 3 4 5 7 9 13 17 20 31 61 119'
for k in $last; do
    # More than eight deaths of vm in ten seconds end the system.
    [ -z "${SKINK_DEEP:-}" ] || sleep 3
    for service in pm vm vfs; do
        container run box --root /c --processes 6 --memory 16M --descriptors 20 --processor 50 -- sleep 1000 &
        until container exec box -- true 2>/dev/null; do sleep 0.1; done
        service inject $service kill-after $k
        container exec box -- contained processes > /tmp/processes
        container exec box -- contained descriptors > /tmp/descriptors
        until container list | grep -q '^box .* 1/6 '; do sleep 0.1; done
        service inject $service kill-after $k
        container kill box
        wait
        for what in processes descriptors; do
            [ -f /tmp/$what.first ] || cp /tmp/$what /tmp/$what.first
            cmp /tmp/$what /tmp/$what.first || { echo "$service after $k:"; cat /tmp/$what; }
        done
        [ "$(container list | wc -l)" = 1 ] || container list
    done
done
cat /tmp/processes /tmp/descriptors
