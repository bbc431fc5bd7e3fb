"""What happens in a cluster, kept in a file: objects as they were, one change after the other, without secrets.

    client ─▶ Recorder (list, watch, mark what was missed) ─▶ essence (what decisions depend on) ─▶ hashed_names
                                                                                 RecordingWriter ─▶ file ◀──┘
    file ─▶ read_recording ─▶ Recording: header, entries, what is wrong with it ─▶ `dray.replay`

Follows through any client, so a real Kubernetes cluster as well. May import `dray.client`,
`dray.process` and below.
"""

from dray.recording.entries import VERSION, Entry, Gap, Gone, Header, Listed, Seen
from dray.recording.essence import RECORDED
from dray.recording.files import Recording, RecordingError, RecordingWriter, read_recording
from dray.recording.recorder import Recorder

__all__ = [
    "RECORDED",
    "VERSION",
    "Entry",
    "Gap",
    "Gone",
    "Header",
    "Listed",
    "Recorder",
    "Recording",
    "RecordingError",
    "RecordingWriter",
    "Seen",
    "read_recording",
]
