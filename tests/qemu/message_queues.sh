# System V message queues as on Linux, whose output the expected one is.
message_queues
