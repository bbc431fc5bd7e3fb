#!/usr/bin/env bash
# A health monitor apart from the driver: one round of its policy, with kubectl and nothing else.
#
# Drivers publish what they see as taints with effect None, which hurt nobody. This monitor decides what follows: a
# device with the taint $SIGN is taken offline by a DeviceTaintRule, and put back when its driver takes the sign away.
# It needs to read resourceslices and to write devicetaintrules (examples/taints/health_monitor_role.yaml).
set -euo pipefail

SIGN=${SIGN:-health.example.com/degraded}
EFFECT=${EFFECT:-NoExecute}
MARK="app.kubernetes.io/managed-by=health-monitor"

# driver, pool and device of every device that has the sign, a line each
degraded() {
    kubectl get resourceslices -o go-template='{{range .items}}{{$spec := .spec}}{{range .spec.devices}}{{$device := .name}}
{{- range .taints}}{{if eq .key "'"$SIGN"'"}}{{$spec.driver}} {{$spec.pool.name}} {{$device}}{{"\n"}}{{end}}{{end}}
{{- end}}{{end}}'
}

wanted=" "
while read -r driver pool device; do
    [ -n "$device" ] || continue
    name="health-$pool-$device"
    wanted+="$name "
    kubectl apply -f - <<RULE
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata:
  name: $name
  labels: {${MARK%=*}: ${MARK#*=}}
spec:
  deviceSelector: {driver: $driver, pool: $pool, device: $device}
  taint: {key: $SIGN, value: monitor, effect: $EFFECT}
RULE
done < <(degraded)

for name in $(kubectl get devicetaintrules -l "$MARK" -o jsonpath='{.items[*].metadata.name}'); do
    case $wanted in
        *" $name "*) ;;
        *) kubectl delete devicetaintrule "$name" ;;
    esac
done
