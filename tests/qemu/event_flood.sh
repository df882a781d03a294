# A million events by the device of a keyboard, which nobody reads meanwhile: input takes no more memory for them, an open file has the newest behind a
# SYN_DROPPED, and the next key arrives.
event_flood $(pidof input)
