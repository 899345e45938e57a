from PIL import Image, ImageFilter

image = Image.effect_noise((3000, 2000), 60).convert("RGB")
for size in ((2000, 1500), (1000, 700)):
    image = image.filter(ImageFilter.GaussianBlur(3)).resize(size).rotate(10)
print(image.size)
