#!/usr/bin/env bash
# Starts Slurm with two nodes of one core on this machine, as root: start_cluster.sh FOLDER; `scontrol shutdown` ends it.
# Each node has two GPUs, as far as Slurm knows.
set -euo pipefail
state=$1
host=$(hostname -s)
install -d "$state"/{controller,log,n1,n2}
install -d -o munge -g munge -m 755 /run/munge
install -d -o munge -g munge -m 700 /etc/munge /var/lib/munge /var/log/munge
if [ ! -s /etc/munge/munge.key ]; then
  head -c 1024 /dev/urandom >/etc/munge/munge.key
  chown munge:munge /etc/munge/munge.key
  chmod 400 /etc/munge/munge.key
fi
munge -n >/dev/null 2>&1 || runuser -u munge -- "$(command -v munged || echo /usr/sbin/munged)"
cat >/etc/slurm/slurm.conf <<END
ClusterName=kdxtest
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
SlurmdTimeout=20
KillWait=5
GresTypes=gpu
MaxArraySize=100
SlurmdParameters=config_overrides
SlurmctldPidFile=$state/slurmctld.pid
SlurmctldLogFile=$state/log/slurmctld.log
StateSaveLocation=$state/controller
SlurmdPidFile=$state/slurmd.%n.pid
SlurmdLogFile=$state/log/slurmd.%n.log
SlurmdSpoolDir=$state/%n
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=17101 CPUs=1 RealMemory=1000 Gres=gpu:2
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=17102 CPUs=1 RealMemory=1000 Gres=gpu:2
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
cat >/etc/slurm/gres.conf <<'END'
NodeName=n[1-2] Name=gpu File=/dev/null
NodeName=n[1-2] Name=gpu File=/dev/zero
END
slurmctld -c
slurmd -N n1
slurmd -N n2
for _ in $(seq 600); do
  [ "$(sinfo --noheader --Node --states=idle 2>/dev/null | wc -l)" = 2 ] && exit 0
  sleep 0.5
done
echo "the nodes are not idle after 5 min; see $state/log" >&2
exit 1
