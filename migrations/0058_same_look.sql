-- Photos that may have the same pixels in another file are found by their perceptual hash.

CREATE INDEX photos_look ON photos (perceptual_hash);
