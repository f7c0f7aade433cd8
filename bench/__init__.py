"""What `make bench` measures: the table "Numbers to reach", each figure beside the same run's baseline."""
