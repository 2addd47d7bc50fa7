"""The three denoisers as plain PyTorch modules, with the state-dict keys of the published ones.

Peers and reference dumps share this file, so that speed and results are compared with the same networks.
"""
import torch
from torch import nn
import torch.nn.functional as F


def padded(x):
    """To multiples of 8 by replication at the bottom and right; as it is where nothing is missing, for padding copies."""
    height, width = x.shape[-2:]
    if height % 8 == 0 and width % 8 == 0:
        return x
    return F.pad(x, (0, -width % 8, 0, -height % 8), mode="replicate")


class DnCNN(nn.Module):
    def __init__(self, channels=3, depth=20, width=64):
        super().__init__()
        self.in_conv = nn.Conv2d(channels, width, 3, padding=1)
        self.conv_list = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1) for _ in range(depth - 2)])
        self.out_conv = nn.Conv2d(width, channels, 3, padding=1)

    def forward(self, x, sigma=None):
        y = F.relu_(self.in_conv(x))
        for conv in self.conv_list:
            y = F.relu_(conv(y))
        return self.out_conv(y) + x


class ResBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.res = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.ReLU(inplace=True),
                                 nn.Conv2d(width, width, 3, padding=1, bias=False))

    def forward(self, x):
        return x + self.res(x)


class DRUNet(nn.Module):
    def __init__(self, channels=3, widths=(64, 128, 256, 512), blocks=4):
        super().__init__()
        a, b, c, d = widths

        def down(w, v):
            return nn.Sequential(*[ResBlock(w) for _ in range(blocks)], nn.Conv2d(w, v, 2, 2, bias=False))

        def up(w, v):
            return nn.Sequential(nn.ConvTranspose2d(w, v, 2, 2, bias=False), *[ResBlock(v) for _ in range(blocks)])

        self.m_head = nn.Conv2d(channels + 1, a, 3, padding=1, bias=False)
        self.m_down1, self.m_down2, self.m_down3 = down(a, b), down(b, c), down(c, d)
        self.m_body = nn.Sequential(*[ResBlock(d) for _ in range(blocks)])
        self.m_up3, self.m_up2, self.m_up1 = up(d, c), up(c, b), up(b, a)
        self.m_tail = nn.Conv2d(a, channels, 3, padding=1, bias=False)

    def forward(self, x, sigma=0.1):
        height, width = x.shape[-2:]
        x = padded(x)
        level = torch.full_like(x[:, :1], sigma)
        x1 = self.m_head(torch.cat((x, level), 1))
        x2 = self.m_down1(x1)
        x3 = self.m_down2(x2)
        x4 = self.m_down3(x3)
        y = self.m_body(x4)
        y = self.m_up3(y + x4)
        y = self.m_up2(y + x3)
        y = self.m_up1(y + x2)
        return self.m_tail(y + x1)[..., :height, :width]


class UNet(nn.Module):
    def __init__(self, channels=3, widths=(64, 128, 256, 512)):
        super().__init__()
        a, b, c, d = widths

        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                                 nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))

        def up(i, o):
            return nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o),
                                 nn.ReLU(inplace=True))

        self.Conv1, self.Conv2, self.Conv3, self.Conv4 = block(channels, a), block(a, b), block(b, c), block(c, d)
        self.Up4, self.Up_conv4 = up(d, c), block(2 * c, c)
        self.Up3, self.Up_conv3 = up(c, b), block(2 * b, b)
        self.Up2, self.Up_conv2 = up(b, a), block(2 * a, a)
        self.Conv_1x1 = nn.Conv2d(a, channels, 1)

    def forward(self, x, sigma=None):
        height, width = x.shape[-2:]
        x = padded(x)
        e1 = self.Conv1(x)
        e2 = self.Conv2(F.max_pool2d(e1, 2))
        e3 = self.Conv3(F.max_pool2d(e2, 2))
        y = self.Up4(self.Conv4(F.max_pool2d(e3, 2)))
        y = self.Up3(self.Up_conv4(torch.cat((e3, y), 1)))
        y = self.Up2(self.Up_conv3(torch.cat((e2, y), 1)))
        y = self.Up_conv2(torch.cat((e1, y), 1))
        return (self.Conv_1x1(y) + x)[..., :height, :width]


NETWORKS = {"drunet": DRUNet, "unet": UNet, "dncnn": DnCNN}
