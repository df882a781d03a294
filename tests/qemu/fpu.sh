# Vector registers of several programs, across page faults.
registers | sort
registers | sort
