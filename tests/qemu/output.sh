# What the command prints arrives as it is, zero bytes and a missing newline included.
echo one
printf 'two\r\n\0three\t\377'
echo 'not here' >&2
printf 'the end'
