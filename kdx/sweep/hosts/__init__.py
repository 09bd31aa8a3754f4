"""Where the processes of runs come from: what a sweep asks of a host (`host`), and the hosts that there are."""
