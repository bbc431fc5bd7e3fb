"""Makes jobs at the times that cron jobs say.

`plan` decides which job to make, which to delete and what to tell, purely (when is in `dray.api.cron_schedule`);
`controller` watches and writes.
"""

from dray.controllers.cron_job.controller import CronJobController

__all__ = ["CronJobController"]
