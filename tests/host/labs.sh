#: timeout 600
# Every lab fails as it is handed out, and passes with its solution. The short form leaves out those that need cargo or the guest.
labs=$(dirname "$SKINK")/labs
if [ -n "${SKINK_DEEP:-}" ]; then
    "$labs/check"
else
    "$labs/check" 01 04 08 09
fi
