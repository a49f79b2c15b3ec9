"""Pictures of studies: SVG text without any library, and characters for the terminal. They read results alone."""
