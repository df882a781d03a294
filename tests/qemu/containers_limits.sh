# Containers with limits: each limit at its edge and by every way around it, who is in them, what is left when they are killed, and what their
# root cannot do outside.
#: timeout 600
mkdir -p /c/bin /c/proc /c/dev /c/tmp
for command in busybox contained; do cp /bin/$command /c/bin; done
for name in sh sleep true hostname id ls cat grep tr; do ln -s busybox /c/bin/$name; done
touch /outside

echo '== a world of its own'
container run web --root /c -- sh -c 'id -u; hostname; echo $$; cat /proc/self/uid_map | tr -s " "'
hostname

echo '== limits'
container run mem --root /c --memory 16M -- contained memory 16 2>/dev/null
container run few --root /c --processes 6 -- contained processes
container run few --root /c --processes 6 -- contained threads
container run files --root /c --descriptors 20 -- contained descriptors
container run pipes --root /c --pipes 5 -- contained pipes
container run time --root /c --processor 10 -- contained hog processor &
until container list | grep -q '^time .* [1-9][0-9][0-9]ms *10%'; do sleep 0.1; done
container kill time

echo '== priorities'
niceness='set -- $(cat /proc/self/stat); shift 18; echo "niceness $1"'
real_time='set -- $(grep "realtime priority" /proc/self/limits); echo "real-time priority $5"'
container run plain --root /c -- sh -c "$niceness; $real_time"
container run slow --root /c --priority 10 -- sh -c "$niceness; $real_time"
container run quick --root /c --real-time -- sh -c "$niceness; $real_time"

echo '== list, exec, kill'
container run one --root /c --processes 5 --memory 8M -- sleep 1000 &
until container exec one -- true 2>/dev/null; do sleep 0.1; done
container list | grep -c '^one .*1/5 .*K/8192K'
container exec one -- sh -c 'tr "\0" " " < /proc/1/cmdline; hostname'
container exec one -- sh -c 'exit 7'; echo "status $?"
container exec one -- nothing; echo "status $?"
container run one --root /c -- true; echo "status $?"
container exec two -- true; echo "status $?"
container kill two; echo "status $?"
container run bad --root /nowhere -- true; echo "status $?"
container kill one; echo "status $?"
wait
container list | wc -l

echo '== nothing is left'
used() { free -k | awk '/Mem:/ {print $3}'; }
count() { ls /proc | grep -c '^[0-9]'; cat /proc/sys/fs/file-nr; wc -l < /proc/mounts; }
once() {
    container run left --root /c --memory 32M --processes 40 --descriptors 200 -- sh -c 'contained hog memory & contained hog files & contained hog forks' &
    until container list | grep -q '^left .* [1-9][0-9]/40'; do sleep 0.1; done
    container kill left
    wait
}
once
sync
before=$(count) memory=$(used)
once
sync
after=$(count) more=$(($(used) - memory))
if [ "$before" = "$after" ]; then echo 'the same processes, files, mounts'; else echo "$before" "$after"; fi
if [ $more -lt 1024 ]; then echo 'the same memory'; else echo "$more KiB more"; fi

echo '== escapes'
sleep 1000 & outside=$!
container run root --root /c -- contained escapes $outside
kill $outside && echo 'it lives'
