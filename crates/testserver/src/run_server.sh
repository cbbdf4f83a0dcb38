# Runs a server until standard input ends, which happens when the test process ends in any way.
# Arguments: the folder to remove at the end, then the command. Standard input: one command per line,
# `kill`, `stop`, `start`, `freeze` or `thaw`. Each command is printed when it is done.
folder=$1
shift

start() {
    "$@" </dev/null >>"$folder/log" 2>&1 &
    server=$!
}

# The server and its child processes. The name of the folder is in the title of each of them.
processes() {
    ps -A -ww -o pid=,args= |
        awk -v name="${folder##*/}[:/]" '$2 ~ /postgres:?$/ && $0 ~ name { print $1 }'
}

# Kills all processes at once, like a power failure, then those that were started in the meantime.
kill_all() {
    kill -KILL $server $(processes) 2>/dev/null
    wait
    server=
    while all=$(processes) && [ -n "$all" ]; do
        kill -KILL $all 2>/dev/null
        sleep 0.01
    done
}

start "$@"
while read -r command; do
    case $command in
        kill) kill_all ;;
        # As `pg_ctl stop` does: open transactions are rolled back, and connections are closed.
        stop) kill -INT $server; wait $server; server= ;;
        start) start "$@" ;;
        freeze) kill -STOP $(processes) 2>/dev/null ;;
        thaw) kill -CONT $(processes) 2>/dev/null ;;
    esac
    echo "$command"
done
kill_all
rm -rf "$folder"
