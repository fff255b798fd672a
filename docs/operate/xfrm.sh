#!/bin/bash
# xfrm.sh on|off A B KEYS: everything that the hosts A and B (IPv4 addresses) send each other is encrypted by the kernel:
# ESP in transport mode, AES-256-GCM, a key for each direction. To be run on both hosts, as root, with the same arguments.
# What comes from the other host unencrypted is dropped.
#
# KEYS: a file of two lines, each 36 bytes in hexadecimal (a key of 32 and its salt of 4): for A to B, and for B to A.
#   for direction in 1 2; do head -c 36 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; echo; done >KEYS; chmod 600 KEYS
# The same keys must not be used again after a reboot, or with `on` once more: make new ones.
set -euo pipefail
action=$1 a=$2 b=$3 keys=$4
readonly spi_ab=0xe9e70001 spi_ba=0xe9e70002
mapfile -t key <"$keys"

each_direction() { # each_direction FUNCTION: FUNCTION SOURCE DESTINATION SPI KEY POLICY, on this host
  local out=out in=in
  if ip -4 -o address | grep -q "inet $b/"; then out=in in=out; fi
  "$1" "$a" "$b" $spi_ab "0x${key[0]}" $out
  "$1" "$b" "$a" $spi_ba "0x${key[1]}" $in
}

# Numbers of 64 bits (esn): with 32, a busy pair of hosts would run out of them within hours.
turn_on() {
  ip xfrm state add src "$1" dst "$2" proto esp spi "$3" reqid 1 mode transport replay-window 128 flag esn \
    aead 'rfc4106(gcm(aes))' "$4" 128
  ip xfrm policy add src "$1" dst "$2" dir "$5" tmpl src "$1" dst "$2" proto esp reqid 1 mode transport
}

turn_off() {
  ip xfrm policy delete src "$1" dst "$2" dir "$5"
  ip xfrm state delete src "$1" dst "$2" proto esp spi "$3"
}

case $action in
  on) each_direction turn_on ;;
  off) each_direction turn_off ;;
  *) exit 2 ;;
esac
