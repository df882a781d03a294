# What is asked wrongly is refused with one sentence on standard error and exit status 2.

# refused TEXT ARGUMENT...: the command ends with 2 and says TEXT in its only line.
refused() {
    text=$1
    shift
    status=0
    "$SKINK" "$@" >out 2>err || status=$?
    if [ $status != 2 ] || [ -s out ] || [ "$(wc -l <err)" != 1 ] || ! grep -qF -- "$text" err; then
        echo "skink $*: status $status, expected 2 and one line with: $text"
        cat out err
        exit 1
    fi
}

refused "no command 'bot'" bot
refused 'no option --quick' run --quick
refused 'no folder /no/such' run --overlay /no/such
refused "'bc=1' is no name" exec --package bc=1 true
refused "no system 'other'" run --system other
refused "not 'many'" exec --smp many true
refused 'needs the command' exec
refused 'needs a value' exec --out
refused "with 'nowhere'" test nowhere
refused '--iso' image
refused './skink new driver counter' new
refused "not a 'kernel'" new kernel mine
refused "'Counter' is no name" new driver Counter
refused "a package 'rtc' already" new driver rtc
refused 'quoted as a whole' explain ls /
refused 'no option --html' doc --html
refused 'no option --all' check --all

# A lock of a process that lives is respected, one of a dead process is not.
echo $$ >"$SKINK_BUILD/lock"
refused "another skink (process $$)" check
sh -c 'echo $$' >"$SKINK_BUILD/lock"
refused 'no option --all' check --all
