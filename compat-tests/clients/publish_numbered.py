"""Publishes the numbers 0..COUNT-1 with QoS 1 and prints each one whose PUBACK says success.

publish_numbered.py PORT TOPIC COUNT WINDOW CLIENT_ID [USER PASSWORD]
"""

import collections
import sys
import threading

import paho.mqtt.client as mqtt


def main() -> int:
    port, topic, count, window, client_id = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=client_id, protocol=mqtt.MQTTv5)
    client.max_inflight_messages_set(window)
    client.max_queued_messages_set(0)
    if len(sys.argv) > 7:
        client.username_pw_set(sys.argv[6], sys.argv[7])
    numbers = {}
    early = {}
    acked = collections.deque()
    lock = threading.Lock()
    done = threading.Condition(lock)
    connected = threading.Event()

    def on_connect(_client, _data, _flags, reason, _properties):
        if reason.is_failure:
            print(f"refused {reason}", file=sys.stderr, flush=True)
            sys.exit(3)
        connected.set()

    def on_publish(_client, _data, mid, reason, _properties):
        with lock:
            if reason.is_failure:
                print(f"failed {mid} {reason}", file=sys.stderr, flush=True)
                return
            if mid in numbers:
                acked.append(numbers.pop(mid))
            else:
                early[mid] = True
            done.notify_all()

    client.on_connect = on_connect
    client.on_publish = on_publish
    client.connect("127.0.0.1", port, keepalive=30)
    client.loop_start()
    if not connected.wait(15):
        print("no CONNACK", file=sys.stderr, flush=True)
        return 4
    for number in range(count):
        with done:
            while len(numbers) >= window:
                if not done.wait(60):
                    print("stalled", file=sys.stderr, flush=True)
                    return 5
        info = client.publish(topic, str(number).encode(), qos=1)
        with lock:
            if early.pop(info.mid, False):
                acked.append(number)
            else:
                numbers[info.mid] = number
        while acked:
            print(acked.popleft(), flush=False)
    with done:
        while numbers:
            if not done.wait(60):
                print(f"{len(numbers)} never acknowledged", file=sys.stderr, flush=True)
                return 5
    while acked:
        print(acked.popleft())
    sys.stdout.flush()
    client.disconnect()
    client.loop_stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
