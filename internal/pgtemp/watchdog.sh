# The watchdog of one temporary cluster. Arguments: the directory.
# It reads from a pipe whose other end only the parent holds:
#   pid N    the child to end when the parent is gone (also the number of its process group)
#   gone     that child has ended
#   done     everything is cleaned up; nothing to do
# The end of the pipe means that the parent has died.
trap '' HUP INT TERM
dir=$1
pid=
while read -r word number; do
	case $word in
	pid) pid=$number ;;
	gone) pid= ;;
	done) exit 0 ;;
	esac
done

# alive SIGNAL SECONDS: signal the child's group and wait; true when it is still there.
alive() {
	kill -s "$1" -- "-$pid" 2>/dev/null || return 1
	left=$(($2 * 10))
	while kill -s 0 -- "-$pid" 2>/dev/null; do
		[ "$left" -gt 0 ] || return 0
		left=$((left - 1))
		sleep 0.1 2>/dev/null || sleep 1
	done
	return 1
}
if [ -n "$pid" ]; then
	alive INT 10 && alive QUIT 5 && alive KILL 5
fi
case $dir in
*/dpwatch-pg-*) rm -rf -- "$dir" || { sleep 1; rm -rf -- "$dir"; } ;;
esac
