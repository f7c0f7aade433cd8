-- How a device is notified while no page is open: JSON, null where it is not.
ALTER TABLE devices ADD COLUMN push TEXT;
