#!/usr/bin/env bash
# Makes a container of Proxmox VE with Snaplore, on the node, as root:
#     bash proxmox.sh snaplore_0.1.0_amd64.deb
# It has 2 cores, 2 GB of memory and 16 GB of disk on the storage STORAGE (local-lvm), on the bridge BRIDGE (vmbr0).
set -euo pipefail

package=${1:?"name the Debian package: bash proxmox.sh snaplore_0.1.0_amd64.deb"}
storage=${STORAGE:-local-lvm} bridge=${BRIDGE:-vmbr0} templates=${TEMPLATES:-local}
if ! command -v pct >/dev/null; then
    echo "This is no node of Proxmox VE: pct is missing." >&2
    exit 1
fi
if [ ! -r "$package" ]; then
    echo "$package cannot be read." >&2
    exit 1
fi

pveam update >/dev/null
template=$(pveam available --section system | awk '$2 ~ /^debian-12-standard_/ {print $2}' | sort -V | tail -n 1)
if [ -z "$template" ]; then
    echo "Proxmox offers no template of Debian 12." >&2
    exit 1
fi
pveam list "$templates" | grep -q "$template" || pveam download "$templates" "$template"

id=${ID:-$(pvesh get /cluster/nextid)}
pct create "$id" "$templates:vztmpl/$template" --hostname snaplore --unprivileged 1 --features nesting=1 \
    --cores 2 --memory 2048 --swap 0 --rootfs "$storage:16" --net0 "name=eth0,bridge=$bridge,ip=dhcp" --onboot 1
pct start "$id"
for _ in $(seq 60); do
    if pct exec "$id" -- sh -c 'hostname -I | grep -q .'; then break; fi
    sleep 1
done
pct push "$id" "$package" /root/snaplore.deb
pct exec "$id" -- sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y /root/snaplore.deb && rm /root/snaplore.deb'
echo "Snaplore runs in container $id:"
pct exec "$id" -- snaplore keys show-api-key --hint
