# Gives a node its place in new namespaces: $1 is its directory, $2 its address.
set -eu
space=$1

# The programs of a node write at fixed places, which are in its directory.
for directory in /run /var/lib /var/log; do
	mkdir -p "$space$directory"
	mount --bind "$space$directory" "$directory"
done

# The kubelet requires these settings, which the whole machine shares: it sees files instead of them.
for setting in vm/overcommit_memory=1 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
	file=$space/$(echo "${setting%=*}" | tr / .)
	echo "${setting#*=}" >"$file"
	mount --bind "$file" "/proc/sys/${setting%=*}"
done

# Connections to Services leave by the default route until kube-proxy gives them their destination.
ip link set lo up
ip link add node type veth peer name wire
ip link set wire up
ip link set node up
ip address add "$2/24" dev node
ip route add default dev node
echo 1 >/proc/sys/net/ipv4/ip_forward
