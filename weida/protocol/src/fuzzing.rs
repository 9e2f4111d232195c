//! Entry points shared by the fuzz targets and their replay in the normal tests.
