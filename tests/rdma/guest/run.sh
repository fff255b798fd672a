#!/bin/bash
# run.sh [-n GUESTS] [-c CPUS] [-m MIB] [-t SECONDS] [-k] -- COMMAND...
#
# Boots one guest (or two on a wire: -n 2) with a Soft-RoCE device rxe0 over the host's root file system (read-only, with
# a tmpfs on top), and runs COMMAND in each, in the current directory, as root. In the guest: EGRET_GUEST_ID (0, 1),
# EGRET_GUESTS, EGRET_GUEST_ADDRESS (10.9.0.1, 10.9.0.2), EGRET_GUEST_KERNEL (its modules: modprobe -d), the host's EGRET_*
# variables, and /share, a folder that the guests and the host share; /run and /dev/shm are fresh.
#
#   -t SECONDS  kills the guests after so long (default 120), boot included    -k  keep /share and the consoles, say where
#
# Ends with the first nonzero status among the guests' commands; 77: skipped, this machine cannot run guests; 124: out
# of time; 125: a guest ended without a status (its console is shown). EGRET_GUEST_ACCEL=kvm where that works.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
source "$here/common.sh"

guests=1 cpus=1 memory=1024 seconds=120 keep=
while getopts n:c:m:t:k option; do
  case $option in
    n) guests=$OPTARG ;; c) cpus=$OPTARG ;; m) memory=$OPTARG ;; t) seconds=$OPTARG ;; k) keep=1 ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
if (($# == 0)) || [[ ! $guests =~ ^[12]$ ]]; then
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2
  exit 2
fi

paths=$("$here/prepare.sh") || exit
{ read -r vmlinux; read -r initramfs; } <<<"$paths"
accel=${EGRET_GUEST_ACCEL:-tcg,thread=multi,tb-size=256}
share=$(mktemp -d "${TMPDIR:-/tmp}/egret-guest.XXXXXX")
machines=() printers=()

finish() {
  ((${#machines[@]} == 0)) || kill "${machines[@]}" 2>/dev/null || true
  ((${#printers[@]} == 0)) || kill "${printers[@]}" 2>/dev/null || true
  if [[ $keep ]]; then echo "run: kept $share" >&2; else rm -rf "$share"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM

write_command() { # what the guest runs: the directory, the environment, the command
  printf 'cd %q || exit 126\n' "$PWD"
  printf 'export EGRET_GUEST_KERNEL=%q\n' "${vmlinux%/*}/kernel"
  export -p | grep '^declare -x EGRET_' || true
  printf 'exec'
  printf ' %q' "$@"
  echo
}

# wire_arguments ID: the network device of one of two guests; guest 0 listens. One buffer takes a whole frame (mrg_rxbuf=off):
# where one needs several, QEMU before 9.1 may miss that the guest has added some, and the wire stands still for good.
wire_arguments() {
  local server=off
  (($1 == 0)) && server=on
  echo "-netdev stream,id=wire,server=$server,addr.type=unix,addr.path=$share/wire"
  echo "-device virtio-net-pci,netdev=wire,mac=52:54:00:09:00:0$(($1 + 1)),mrg_rxbuf=off,host_mtu=9000"
}

wait_for_wire() { # guest 1 may only start once guest 0 listens
  local i
  for ((i = 0; i < 250; i++)); do
    [[ -S $share/wire ]] && return
    sleep 0.02
  done
  echo "run: guest 0 did not start" >&2
  exit "$EXIT_NO_STATUS"
}

start_guest() { # start_guest ID
  local id=$1 wire=()
  ((guests == 1)) || read -r -d '' -a wire < <(wire_arguments "$id") || true
  mkfifo "$share/output.$id"
  if ((guests == 1)); then cat "$share/output.$id" & else sed -u "s/^/[$id] /" "$share/output.$id" & fi
  printers+=($!)
  timeout -k 5 "$seconds" qemu-system-x86_64 -M q35 -accel "$accel" -cpu max,la57=off -smp "$cpus" -m "$memory" \
    -display none -nodefaults -no-user-config -no-reboot -serial "file:$share/console.$id" \
    -kernel "$vmlinux" -initrd "$initramfs" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on tsc=reliable ima_appraise=off \
egret.id=$id egret.guests=$guests" \
    -device virtio-serial-pci -chardev "file,id=output,path=$share/output.$id" \
    -device virtserialport,chardev=output,name=output \
    -fsdev local,id=hostroot,path=/,security_model=none,readonly=on,multidevs=remap \
    -device virtio-9p-pci,fsdev=hostroot,mount_tag=hostroot \
    -fsdev "local,id=share,path=$share,security_model=none" -device virtio-9p-pci,fsdev=share,mount_tag=share \
    -device virtio-rng-pci "${wire[@]}" </dev/null &
  machines+=($!)
}

guest_status() { # guest_status ID STATUS_OF_QEMU: prints how the guest's command ended
  local id=$1
  if [[ -s $share/status.$id ]]; then
    cat "$share/status.$id"
    return
  fi
  echo "run: guest $id gave no status; the end of its console:" >&2
  tail -n 40 "$share/console.$id" >&2 || true
  if (($2 == EXIT_TIMEOUT || $2 == 137)); then
    echo "run: out of time ($seconds s)" >&2
    echo "$EXIT_TIMEOUT"
  else
    echo "$EXIT_NO_STATUS"
  fi
}

cp "$here/guest_main.sh" "$here/soft_roce.sh" "$share/"
write_command "$@" >"$share/command"
for ((id = 0; id < guests; id++)); do
  ((id == 0)) || wait_for_wire
  start_guest "$id"
done
status=0
for ((id = 0; id < guests; id++)); do
  qemu=0
  wait "${machines[$id]}" || qemu=$?
  one=$(guest_status "$id" "$qemu")
  ((status != 0)) || status=$one
done
machines=()
wait "${printers[@]}" || true # they end with QEMU's end of the pipes
printers=()
exit "$status"
