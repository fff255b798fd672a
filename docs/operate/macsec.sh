#!/bin/bash
# macsec.sh DEVICE ADDRESS/LENGTH OWN_KEY PEER_MAC PEER_KEY: makes the device macsec0 on the Ethernet device DEVICE, with that
# address. What goes through it is encrypted and signed by the kernel (802.1AE, AES-128-GCM), and what comes in otherwise
# is dropped. To be run on both hosts, as root: each one's OWN_KEY is the other's PEER_KEY. Off: ip link delete macsec0.
#
# Keys: 16 bytes in hexadecimal, of root's eyes only:  head -c 16 /dev/urandom | od -An -v -tx1 | tr -d ' \n'
# The same keys must not be used again after a reboot: make new ones.
set -euo pipefail
device=$1 address=$2 own_key=$3 peer_mac=$4 peer_key=$5

ip link add link "$device" macsec0 type macsec encrypt on protect on validate strict replay on window 32
ip macsec add macsec0 tx sa 0 pn 1 on key 01 "$own_key"
ip macsec add macsec0 rx port 1 address "$peer_mac"
ip macsec add macsec0 rx port 1 address "$peer_mac" sa 0 pn 1 on key 02 "$peer_key"
ip address add "$address" dev macsec0
ip link set macsec0 up
