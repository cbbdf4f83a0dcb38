# Runs a server and ends it when standard input ends: when the test process is gone, however it went.
# Arguments: the folder to remove at the end, then the command. Orders come as lines: kill, start.
folder=$1
shift

start() {
    "$@" </dev/null >>"$folder/log" 2>&1 &
    server=$!
}

# The server and its processes: the folder's name is in what each of them is called.
processes() {
    ps -A -ww -o pid=,args= |
        awk -v name="${folder##*/}[:/]" '$2 ~ /postgres:?$/ && $0 ~ name { print $1 }'
}

# As in a power cut: all of them at once, and then those that were begun meanwhile.
cut() {
    kill -KILL $server $(processes) 2>/dev/null
    wait
    server=
    while all=$(processes) && [ -n "$all" ]; do
        kill -KILL $all 2>/dev/null
        sleep 0.01
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
