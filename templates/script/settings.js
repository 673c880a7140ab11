// Settings: language, theme, model, tools, devices, storage.
