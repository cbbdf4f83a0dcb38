# Runs a server and ends it when standard input ends: when the test process is gone, however it went.
# Arguments: the folder to remove at the end, then the command. Orders come as lines: kill, start.
folder=$1
shift

start() {
    "$@" </dev/null >>"$folder/log" 2>&1 &
    server=$!
}

# As in a power cut: the server and each of its processes, at once.
cut() {
    all="$server $(ps -A -o pid=,ppid= | awk -v parent="$server" '$2 == parent { print $1 }')"
    kill -KILL $all 2>/dev/null
    wait "$server" 2>/dev/null
    for process in $all; do
        while kill -0 "$process" 2>/dev/null; do sleep 0.01; done
    done
}

start "$@"
while read -r order; do
    case $order in
        kill) cut ;;
        start) start "$@" ;;
    esac
    echo "$order"
done
cut
rm -rf "$folder"
