"""GPU telemetry: NVIDIA through NVML, AMD through amdsmi."""
