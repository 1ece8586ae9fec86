# Process 1 of the node's own process and mount namespaces: when it ends, the kernel ends every container with it and drops every mount.
# Arguments: folder for logs and configurations, state folder, kubelet, its kubeconfig, node name, node address, its data folder.
set -eu
run=$1 state=$2 kubelet=$3 kubeconfig=$4 name=$5 address=$6 data=$7

# Paths that are fixed in the programs, hidden from the machine.
for folder in /run/containerd /var/lib/cni /var/log/containers; do
    mkdir -p "$folder"
    mount -t tmpfs node "$folder"
done

containerd --config "$run/containerd.toml" >>"$run/containerd.log" 2>&1 &
until [ -S "$state/containerd.sock" ]; do sleep 0.1; done

"$kubelet" --config "$run/kubelet.yaml" --kubeconfig "$kubeconfig" --hostname-override "$name" --node-ip "$address" \
    --root-dir "$data/kubelet" --cert-dir "$data/pki" >>"$run/kubelet.log" 2>&1 &
wait $!
echo "kubelet ended with $?: see kubelet.log"
